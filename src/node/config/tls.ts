/**
 * Files of TLS: a server's certificate and key, and the authority that a cluster's nodes are verified against.
 *
 * Read as text and judged by the runtime (`ConfigSource.judgeTls`), so that faults are listed with all others at the
 * start, and a reload takes new files only if all of them are usable.
 */
import { secretFile } from "../../core/settings/settings.ts"
import type { ConfigSourceShape, TlsMaterial } from "../../ports/ConfigSource.ts"
import type { Secrets } from "./secrets.ts"

/** The settings that name the files. */
export interface TlsSettings {
  readonly tlsCertFile: string | undefined
  readonly tlsKeyFile: string | undefined
  readonly tlsCaFile: string | undefined
}

export interface Tls {
  /** Content of the files when they were last usable. */
  readonly current: () => TlsMaterial
  /** Whether nodes verify each other by certificates of one authority. */
  readonly isMutual: boolean
  /** Calls `listener` after a reload that replaced a file; the returned function ends that. */
  readonly onReplaced: (listener: () => void) => () => void
}

const together = ({ tlsCaFile, tlsCertFile, tlsKeyFile }: TlsSettings): ReadonlyArray<string> => {
  if (tlsCertFile !== undefined && tlsKeyFile === undefined)
    return ["SVC_TLS_CERT_FILE is set without its key; set SVC_TLS_KEY_FILE too, or neither for plain HTTP"]
  if (tlsCertFile === undefined && tlsKeyFile !== undefined)
    return ["SVC_TLS_KEY_FILE is set without its certificate; set SVC_TLS_CERT_FILE too, or neither for plain HTTP"]
  if (tlsCertFile === undefined && tlsCaFile !== undefined)
    return ["SVC_TLS_CA_FILE is set without a certificate to show; set SVC_TLS_CERT_FILE and SVC_TLS_KEY_FILE too"]
  return []
}

interface Read {
  readonly material: TlsMaterial
  readonly warnings: ReadonlyArray<string>
}

const readFiles = (
  { tlsCaFile, tlsCertFile = "", tlsKeyFile = "" }: TlsSettings,
  source: ConfigSourceShape,
  faults: Array<string>
): Read | undefined => {
  const before = faults.length
  const text = (name: string, path: string): string => secretFile(name, path, source, faults, "PEM text") ?? ""
  const material = {
    cert: text("SVC_TLS_CERT_FILE", tlsCertFile),
    key: text("SVC_TLS_KEY_FILE", tlsKeyFile),
    ca: tlsCaFile === undefined ? undefined : text("SVC_TLS_CA_FILE", tlsCaFile)
  }
  if (faults.length > before) return undefined
  const judged = source.judgeTls?.(material, {
    cert: `SVC_TLS_CERT_FILE: ${tlsCertFile}`,
    key: `SVC_TLS_KEY_FILE: ${tlsKeyFile}`,
    ca: `SVC_TLS_CA_FILE: ${tlsCaFile}`
  })
  faults.push(...(judged?.faults ?? []))
  return faults.length > before ? undefined : { material, warnings: judged?.warnings ?? [] }
}

/** Undefined if no files are set, or if `faults` got their faults. */
export const loadTls = (
  settings: TlsSettings,
  source: ConfigSourceShape,
  secrets: Secrets,
  faults: Array<string>,
  warnings: Array<string>
): Tls | undefined => {
  const apart = together(settings)
  faults.push(...apart)
  if (apart.length > 0 || settings.tlsCertFile === undefined) return undefined
  const first = readFiles(settings, source, faults)
  if (first === undefined) return undefined
  warnings.push(...first.warnings)
  const current = secrets.follow("certificate", "SVC_TLS_CERT_FILE", first.material, (broken) => {
    const read = readFiles(settings, source, broken)
    return read && { value: read.material, warnings: read.warnings }
  })
  const listeners = new Set<() => void>()
  let last = first.material
  secrets.derive(() => {
    if (current() === last) return
    last = current()
    for (const listener of listeners) listener()
  })
  return {
    current,
    isMutual: settings.tlsCaFile !== undefined,
    onReplaced: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    }
  }
}
