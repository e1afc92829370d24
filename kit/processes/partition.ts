/**
 * A network of its own for a process, with one cable to this machine's: a network namespace and a pair of interfaces,
 * which a test cuts, or lets nothing through in one direction.
 *
 * It needs root and `ip` of iproute2; where they are not to be had, tests are skipped and say so.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"

const ip = (...words: ReadonlyArray<string>): void => void execFileSync("ip", [...words], { stdio: "pipe" })

const tried = (): string | undefined => {
  const name = `svc-${randomBytes(3).toString("hex")}`
  const made = spawnSync("ip", ["netns", "add", name])
  if (made.error !== undefined) return "no ip of iproute2"
  if (made.status !== 0) return "no right to make network namespaces"
  ip("netns", "del", name)
  return undefined
}

/** Why there is none; undefined: there is one. */
export const lacking = process.platform === "linux" ? tried() : "no Linux"

export class Partition {
  private readonly name = `svc-${randomBytes(3).toString("hex")}`
  private readonly cable = `svc${randomBytes(3).toString("hex")}`
  private readonly net = `10.231.${randomBytes(1)[0]}`
  /** The address of this machine, and that of the process. */
  readonly outside = `${this.net}.1`
  readonly inside = `${this.net}.2`
  /** Runs what follows it in the network of its own. */
  readonly within: ReadonlyArray<string> = ["ip", "netns", "exec", this.name]

  constructor() {
    ip("netns", "add", this.name)
    ip("link", "add", `${this.cable}a`, "type", "veth", "peer", "name", `${this.cable}b`)
    ip("link", "set", `${this.cable}b`, "netns", this.name)
    ip("addr", "add", `${this.outside}/24`, "dev", `${this.cable}a`)
    ip("link", "set", `${this.cable}a`, "up")
    ip("-n", this.name, "addr", "add", `${this.inside}/24`, "dev", `${this.cable}b`)
    ip("-n", this.name, "link", "set", `${this.cable}b`, "up")
    ip("-n", this.name, "link", "set", "lo", "up")
  }

  /** Nothing passes. */
  cut(): void {
    ip("link", "set", `${this.cable}a`, "down")
  }

  heal(): void {
    ip("link", "set", `${this.cable}a`, "up")
  }

  /** What the process sends arrives; what it is sent does not. */
  dropInward(): void {
    ip("route", "add", "blackhole", `${this.inside}/32`)
  }

  passInward(): void {
    ip("route", "del", "blackhole", `${this.inside}/32`)
  }

  /** A request from within, to the process itself; status and body. */
  ask(url: string, body: unknown, seconds: number): { readonly status: number; readonly text: string } {
    const [command, ...words] = this.within
    const { stdout } = spawnSync(
      command!,
      [
        ...words,
        "curl",
        "-s",
        "--max-time",
        String(seconds),
        "-w",
        "\n%{http_code}",
        "-d",
        JSON.stringify(body),
        `${url}/ingest`
      ],
      { encoding: "utf8" }
    )
    const at = stdout.lastIndexOf("\n")
    return { status: Number(stdout.slice(at + 1)), text: stdout.slice(0, at) }
  }

  close(): void {
    spawnSync("ip", ["route", "del", "blackhole", `${this.inside}/32`])
    spawnSync("ip", ["link", "del", `${this.cable}a`])
    spawnSync("ip", ["netns", "del", this.name])
  }
}
