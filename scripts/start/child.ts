/**
 * A door of the service as a child process that ends with us, however we end.
 *
 * In a process group of its own, because a terminal sends Ctrl-C to a whole group, and to the doors a second signal
 * means "at once". That the parent is gone is seen on a pipe that nobody writes to: it ends also when we are killed
 * with SIGKILL.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { constants } from "node:os"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("../..", import.meta.url))

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** What a shell would say of an end that is none of ours. */
export const exitCodeOf = ({ code, signal }: Exit): number =>
  code !== null && code !== 0 ? code : signal === null ? 1 : 128 + constants.signals[signal]

/** Loaded before the door: stops it, as SIGTERM does, when the pipe from us ends. */
const follow = `data:text/javascript,${encodeURIComponent(`process.stdin.on("close", () => process.kill(process.pid, "SIGTERM")).resume()`)}`

/** Lines of a child that are kept, to be shown when it dies. */
const keptLines = 40

export class Child {
  readonly name: string
  readonly exited: Promise<Exit>
  readonly pid: number | undefined
  readonly #process: ChildProcess
  readonly #lines: Array<string> = []
  #exit: Exit | undefined

  /**
   * `script` is a built door with its arguments, `env` all that it is told; `say` hears every line it prints, without
   * it our own output is its.
   */
  constructor(
    name: string,
    script: ReadonlyArray<string>,
    env: NodeJS.ProcessEnv,
    cwd: string,
    say?: (line: string) => void
  ) {
    this.name = name
    const output = say === undefined ? "inherit" : "pipe"
    this.#process = spawn(process.execPath, ["--import", follow, ...script], {
      cwd,
      env,
      stdio: ["pipe", output, output],
      detached: true
    })
    this.pid = this.#process.pid
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      let rest = ""
      stream?.setEncoding("utf8").on("data", (text: string) => {
        const lines = (rest + text).split("\n")
        rest = lines.pop() ?? ""
        for (const line of lines) {
          this.#lines.push(line)
          if (this.#lines.length > keptLines) this.#lines.shift()
          say?.(line)
        }
      })
    }
    this.exited = new Promise((done) => {
      const end = (exit: Exit): void => done((this.#exit ??= exit))
      this.#process.on("error", (error) => {
        this.#lines.push(String(error))
        end({ code: 1, signal: null })
      })
      this.#process.on("close", (code, signal) => end({ code, signal }))
    })
  }

  get ended(): boolean {
    return this.#exit !== undefined
  }

  /** What it printed last. */
  get lastLines(): ReadonlyArray<string> {
    return this.#lines
  }

  /** Asks it to stop; after `withinMs` it is killed. */
  async stop(withinMs: number): Promise<Exit> {
    if (this.#exit !== undefined) return this.#exit
    this.#process.kill("SIGTERM")
    const late = setTimeout(() => this.kill(), withinMs)
    return this.exited.finally(() => clearTimeout(late))
  }

  kill(): void {
    if (this.#exit === undefined) this.#process.kill("SIGKILL")
  }
}
