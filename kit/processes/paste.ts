/**
 * Shell lines as they are printed, pasted into a terminal that knows nothing of ours: what each of them says.
 *
 * A person waits a second for a stream to open and a few for its delta; here its file is watched instead, because no
 * test may depend on how fast that goes on this machine.
 */
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { removeFolder, temporaryFolder } from "./Door.ts"

/**
 * Output of every line. One that ends in `&` is a stream that goes on while the next runs, until it has said something
 * about that: a line that matches `said`.
 */
export const paste = async (
  lines: ReadonlyArray<string>,
  cwd: string = process.cwd(),
  said = "^event: delta"
): Promise<ReadonlyArray<string>> => {
  const folder = temporaryFolder()
  const file = (n: number): string => `'${join(folder, String(n))}'`
  const script = lines.flatMap((line, n) => {
    const out = `> ${file(n)}`
    if (line.endsWith(" &"))
      return [`${line.slice(0, -2).replace(/--max-time \d+/, "--max-time 60")} ${out} &`, "stream=$!"]
    if (!line.startsWith("sleep 1; ")) return [`${line} ${out}`]
    return [
      `until [ -s ${file(n - 1)} ]; do kill -0 $stream && sleep 0.05; done`,
      `${line.slice("sleep 1; ".length)} ${out}`,
      `while kill -0 $stream && ! grep -q '${said}' ${file(n - 1)}; do sleep 0.05; done`,
      "kill $stream"
    ]
  })
  try {
    await promisify(execFile)("sh", ["-ec", script.join("\n")], { cwd, env: { PATH: process.env["PATH"] ?? "" } })
    return lines.map((_, n) => readFileSync(join(folder, String(n)), "utf8"))
  } finally {
    removeFolder(folder)
  }
}
