/**
 * Reads an OpenAPI document from its files and resolves references between them: regular files of bounded size, below
 * one folder, never a URL.
 *
 * The library itself reads devices and pipes without an end, and follows every reference. Bundling takes time with the
 * cube of the number of references, so it is left out if all stay within one file, and has a budget if they do not.
 */

import { realpathSync } from "node:fs"
import { dirname, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { $RefParser, type FileInfo } from "@apidevtools/json-schema-ref-parser"
import { isMapping } from "../core/typeGuards.ts"
import { readText } from "./ConfigFile.ts"
import { maxDepth, parseText } from "./yamlFile.ts"

/** Limits of a document; a document beyond one is refused with its name. */
const limits = {
  /** Bytes of one file, by format: YAML takes several seconds per MiB to parse. */
  jsonBytes: 8 * 1024 * 1024,
  yamlBytes: 1024 * 1024,
  /** Bytes of all files together, those of YAML counted eightfold. */
  totalBytes: 16 * 1024 * 1024,
  files: 100,
  /** Mappings, lists and values of all files. */
  values: 1_000_000,
  /** References if all stay in one file, and if any leads to another. */
  refs: 50_000,
  refsOfSeveral: 2_000,
  /** Steps of the library while it bundles. */
  steps: 200_000
} as const

const below = (folder: string, path: string): boolean => {
  const way = relative(folder, path)
  return way !== ".." && !way.startsWith(`..${sep}`) && !way.startsWith(sep)
}

const isJson = (url: string): boolean => url.toLowerCase().endsWith(".json")

const json = (text: string): ReturnType<typeof parseText> => {
  try {
    return { content: JSON.parse(text) as unknown, fault: undefined }
  } catch (error) {
    return { content: undefined, fault: `is not JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** The files read for one document. */
class Reading {
  private files = 0
  private bytes = 0
  private values = 0
  private refs = 0
  private steps = 0
  /** Whether a reference leads out of its file. */
  private leavesFile = false
  /** The first fault; the library wraps errors of its readers in texts that do not name it. */
  private fault: string | undefined
  private readonly folders: ReadonlyArray<string>

  /**
   * `root` is the document itself, which may lie anywhere; files it refers to must lie below its folder or below
   * `folder`.
   */
  constructor(
    private readonly root: string,
    folder: string
  ) {
    this.folders = [dirname(root), folder].map((path) => realpathSync(path))
  }

  async bundledDocument(): Promise<unknown> {
    try {
      return await this.resolved()
    } catch (error) {
      throw this.fault === undefined ? error : new Error(this.fault)
    }
  }

  private refuse(what: string): never {
    throw new Error((this.fault ??= what))
  }

  private async resolved(): Promise<unknown> {
    const only = {
      text: false,
      binary: false,
      json: false,
      yaml: { order: 1, canParse: true, parse: (file: FileInfo) => this.parse(file) }
    } as const
    const parser = new $RefParser()
    const resolve = {
      http: false,
      file: { order: 1, canRead: true, read: (file: FileInfo) => this.read(file.url) }
    } as const
    const options = {
      parse: only,
      resolve,
      bundle: { excludedPathMatcher: () => this.step(1), onBundle: () => void this.step(1 + this.refs / 100) }
    }
    const content: unknown = await parser.parse(this.root, options)
    if (!this.leavesFile) return content
    this.checkRefs()
    return parser.bundle(this.root, content as Parameters<$RefParser["bundle"]>[1], options)
  }

  private step(cost: number): false {
    this.steps += cost
    if (this.steps > limits.steps)
      this.refuse(
        `its references take more than ${limits.steps} steps to put together; keep them in one file, or use fewer`
      )
    return false
  }

  private checkRefs(): void {
    const most = this.leavesFile ? limits.refsOfSeveral : limits.refs
    if (this.refs > most)
      this.refuse(`it has more than ${most} references${this.leavesFile ? " and refers to other files" : ""}`)
  }

  /** The text of a file that may be read. */
  private read(url: string): string {
    const path = url === this.root ? url : this.allowed(url)
    if (++this.files > limits.files) this.refuse(`it is made of more than ${limits.files} files`)
    const found = readText(path, isJson(url) ? limits.jsonBytes : limits.yamlBytes)
    if ("fault" in found) this.refuse(path === this.root ? found.fault : `${path}: ${found.fault}`)
    this.bytes += found.text.length * (isJson(url) ? 1 : 8)
    if (this.bytes > limits.totalBytes)
      this.refuse(`its files have more than ${limits.totalBytes} bytes together, YAML counted eightfold`)
    return found.text
  }

  /** The file that a reference names, with links followed; refused unless it lies below the folders. */
  private allowed(url: string): string {
    if (/^[a-z][a-z\d+.-]*:/i.test(url) && !url.startsWith("file:"))
      this.refuse(`$ref names the address ${url}; only files are read`)
    const named = url.startsWith("file:") ? fileURLToPath(url) : decodeURIComponent(url)
    const path = this.real(named)
    if (!this.folders.some((folder) => below(folder, path)))
      this.refuse(`$ref names ${path}, which is outside ${[...new Set(this.folders)].join(" and ")}`)
    return path
  }

  private real(named: string): string {
    try {
      return realpathSync(named)
    } catch (error) {
      return this.refuse(error instanceof Error ? error.message : String(error))
    }
  }

  private parse({ data, url }: FileInfo): unknown {
    const text = String(data)
    const { content, fault } = isJson(url) ? json(text) : parseText(text)
    if (fault !== undefined) this.refuse(url === this.root ? fault : `${url}: ${fault}`)
    this.count(content, 0)
    this.checkRefs()
    return content
  }

  private count(value: unknown, depth: number): void {
    if (++this.values > limits.values) this.refuse(`it has more than ${limits.values} values`)
    if (typeof value !== "object" || value === null) return
    if (depth >= maxDepth) this.refuse(`it is nested more than ${maxDepth} levels deep`)
    const ref = isMapping(value) ? value["$ref"] : undefined
    if (typeof ref === "string") {
      this.refs++
      if (!ref.startsWith("#")) this.leavesFile = true
    }
    for (const item of Object.values(value)) this.count(item, depth + 1)
  }
}

/** The document at `path`, with other files bundled into it. Rejects with the fault, in one line. */
export const bundledDocument = (path: string, folder: string): Promise<unknown> =>
  new Reading(path, folder).bundledDocument()
