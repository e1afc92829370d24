/**
 * Judges the files of TLS, with faults that the operator can act on.
 *
 * Before a server is made with them, because OpenSSL's messages name neither the file nor the setting.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto"
import { createSecureContext } from "node:tls"
import { reasonOf } from "../../core/reason.ts"
import type { ConfigSourceShape, TlsMaterial } from "../../ports/ConfigSource.ts"

/** Set explicitly: options of the runtime may lower its default. */
export const minVersion = "TLSv1.2"

const block = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

const certificatesOf = (text: string, name: string, faults: Array<string>): ReadonlyArray<X509Certificate> => {
  const blocks = text.match(block) ?? []
  if (blocks.length === 0)
    faults.push(`${name} holds no certificate; must be PEM text that begins with -----BEGIN CERTIFICATE-----`)
  return blocks.flatMap((each, i) => {
    try {
      return [new X509Certificate(each)]
    } catch {
      faults.push(`${name} holds a certificate that cannot be read (number ${i + 1}); must be PEM text`)
      return []
    }
  })
}

const keyOf = (text: string, name: string, faults: Array<string>): KeyObject | undefined => {
  try {
    return createPrivateKey(text)
  } catch {
    faults.push(
      /ENCRYPTED/.test(text)
        ? `${name} holds a key with a passphrase; must be one without`
        : `${name} holds no private key; must be PEM text of one without a passphrase`
    )
    return undefined
  }
}

const timeOf = (certificate: X509Certificate, name: string, now: number): ReadonlyArray<string> => {
  if (Date.parse(certificate.validTo) < now)
    return [`${name} expired on ${certificate.validTo}: clients that look will not connect`]
  return Date.parse(certificate.validFrom) > now
    ? [`${name} is not valid before ${certificate.validFrom}: clients that look will not connect`]
    : []
}

/** Whether one of `authorities` has issued a certificate of `chain`, or is in it. */
const isIssuedBy = (chain: ReadonlyArray<X509Certificate>, authorities: ReadonlyArray<X509Certificate>): boolean =>
  chain.some((each) =>
    authorities.some(
      (authority) =>
        each.fingerprint256 === authority.fingerprint256 ||
        (each.checkIssued(authority) && each.verify(authority.publicKey))
    )
  )

export const judgeTls: NonNullable<ConfigSourceShape["judgeTls"]> = (material, names) => {
  const faults: Array<string> = []
  const chain = certificatesOf(material.cert, names.cert, faults)
  const key = keyOf(material.key, names.key, faults)
  const authorities = material.ca === undefined ? [] : certificatesOf(material.ca, names.ca, faults)
  const [own] = chain
  if (own !== undefined && key !== undefined && !own.checkPrivateKey(key))
    faults.push(`${names.key} holds a key that does not belong to the certificate of ${names.cert}`)
  if (faults.length > 0 || own === undefined) return { faults, warnings: [] }
  try {
    createSecureContext(contextOf(material))
  } catch (error) {
    return { faults: [`${names.cert} and its key cannot be used: ${reasonOf(error)}`], warnings: [] }
  }
  const now = Date.now()
  const strange =
    material.ca !== undefined && !isIssuedBy(chain, authorities)
      ? [`${names.cert} is not issued by SVC_TLS_CA_FILE: other nodes will refuse it`]
      : []
  return {
    faults,
    warnings: [
      ...timeOf(own, names.cert, now),
      ...authorities.flatMap((each) => timeOf(each, names.ca, now)),
      ...strange
    ]
  }
}

/** TLS options of a connection, on either side. */
export const contextOf = ({ ca, cert, key }: TlsMaterial) =>
  ({ cert, key, minVersion, ...(ca === undefined ? {} : { ca }) }) as const
