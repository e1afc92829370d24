/**
 * `npm run soak -- --minutes n --seed s`: one SSP, or a cluster, under all kinds of load at once, and whether it grows.
 *
 * Real processes on free ports of this machine. Exit codes: 0 all held, 1 something did not, named in the last lines, 2
 * for a command line that is not understood, 128 and the signal's number after a signal. However it ends, its processes
 * end and its data is removed.
 */
import { randomBytes } from "node:crypto"
import { constants } from "node:os"
import { parseArgs } from "node:util"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import * as Backend from "./backend.ts"
import * as Nodes from "./nodes.ts"
import { type Options, Soak } from "./soak.ts"

const usage = `npm run soak -- --minutes 10 --seed 1   minutes of load and the seed it is drawn from (10, a new one)
  --node ssp|memory|cluster             one SSP on its embedded store, one that keeps nothing, or a scheduler with two SSPs (ssp)
  --rate 1000                           changes a second`

const say = (line: string): void => void process.stdout.write(`${line}\n`)

const number = (name: string, text: string, most: number): number => {
  const value = Number(text)
  if (text.trim() === "" || !Number.isInteger(value) || value < 1 || value > most)
    throw new Error(`--${name} is ${JSON.stringify(text)}; must be a whole number from 1 to ${most}`)
  return value
}

const options = (args: ReadonlyArray<string>): Options | undefined => {
  const { values } = parseArgs({
    args: args.filter((arg) => arg !== "--"),
    options: {
      minutes: { type: "string", default: "10" },
      seed: { type: "string", default: String(1 + (Date.now() % 1e9)) },
      node: { type: "string", default: "ssp" },
      rate: { type: "string", default: "1000" },
      help: { type: "boolean", short: "h", default: false }
    }
  })
  if (values.help) return undefined
  const form = Nodes.forms.find((each) => each === values.node)
  if (form === undefined)
    throw new Error(`--node is ${JSON.stringify(values.node)}; must be one of ${Nodes.forms.join(", ")}`)
  return {
    form,
    minutes: number("minutes", values.minutes, 1440),
    seed: number("seed", values.seed, 2 ** 32 - 1),
    rate: number("rate", values.rate, 10_000),
    say
  }
}

const soak = async (chosen: Options, stop: AbortSignal): Promise<ReadonlyArray<string>> => {
  const folder = temporaryFolder()
  const token = randomBytes(18).toString("base64url")
  const backend = await Backend.start(token)
  let nodes: Nodes.Nodes | undefined
  try {
    nodes = await Nodes.start(chosen.form, folder, Soak.config(folder, backend, token))
    return await new Soak(chosen, nodes, backend, stop).run()
  } finally {
    await nodes?.close()
    await backend.close()
    removeFolder(folder)
  }
}

const main = async (): Promise<number> => {
  let chosen: Options | undefined
  try {
    chosen = options(process.argv.slice(2))
  } catch (error) {
    say(`${error instanceof Error ? error.message : String(error)}\n${usage}`)
    return 2
  }
  if (chosen === undefined) return (say(usage), 0)
  const stop = new AbortController()
  let stoppedBy: "SIGINT" | "SIGTERM" | "SIGHUP" | undefined
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => {
      stoppedBy ??= signal
      stop.abort()
    })
  const { form, minutes, rate, seed } = chosen
  say(`soak of ${form}: ${minutes} minutes, ${rate} changes a second, seed ${seed}`)
  const faults = await soak(chosen, stop.signal).catch((error: unknown) => [
    error instanceof Error ? (error.stack ?? error.message) : String(error)
  ])
  if (stoppedBy !== undefined) return (say(`stopped by ${stoppedBy}`), 128 + constants.signals[stoppedBy])
  for (const fault of faults) say(`FAILED ${fault}`)
  say(
    faults.length === 0
      ? `the soak held, seed ${seed}`
      : `the soak failed; again: npm run soak -- --node ${form} --minutes ${minutes} --rate ${rate} --seed ${seed}`
  )
  return faults.length === 0 ? 0 : 1
}

void main().then((code) => {
  process.exitCode = code
  process.stdout.write("", () => process.exit(code))
})
