/**
 * What a process under soak uses: its heap after a forced collection, asked through the inspector it was started with,
 * and its processor time and counts, as it tells them at `/metrics`.
 *
 * Through the inspector, because a collection cannot be asked for from outside otherwise, and the product must not have
 * a way in for it. A connection for each look and nothing switched on: an inspector that stays would itself keep
 * things.
 */
import { createRequire } from "node:module"
import { secret } from "../../kit/processes/Door.ts"
import type { Process } from "../../kit/processes/processCluster.ts"

const { WebSocket: Socket } = createRequire(import.meta.url)("ws") as {
  readonly WebSocket: new (url: string) => WebSocket
}

/**
 * Node's options for a process under soak: the inspector on a free port of this machine, and an end when its parent is
 * gone, however that went.
 */
export const nodeOptions = `--inspect=127.0.0.1:0 --import data:text/javascript,${encodeURIComponent("const p=process.ppid;setInterval(()=>{if(process.ppid!==p)process.kill(process.pid,'SIGTERM')},500).unref()")}`

/** Longest wait for an answer of the inspector; a collection of a large heap takes seconds. */
const boundMs = 60_000

/** What the inspector answers to a list of commands, one after the other. */
export const inspect = (
  logs: string,
  commands: ReadonlyArray<readonly [method: string, params?: object]>
): Promise<ReadonlyArray<unknown>> =>
  new Promise((done, failed) => {
    const url = [...logs.matchAll(/^Debugger listening on (ws:\S+)/gm)].at(-1)?.[1]
    if (url === undefined) return failed(new Error("the process has no inspector"))
    const socket = new Socket(url)
    const answers: Array<unknown> = []
    const end = (error?: Error): void => {
      clearTimeout(late)
      socket.close()
      if (error === undefined) done(answers)
      else failed(error)
    }
    const late = setTimeout(() => end(new Error(`the inspector did not answer in ${boundMs} ms`)), boundMs)
    const ask = (): void => {
      const [method, params = {}] = commands[answers.length] ?? []
      if (method === undefined) end()
      else socket.send(JSON.stringify({ id: answers.length, method, params }))
    }
    socket.onopen = ask
    socket.onerror = () => end(new Error("the inspector cannot be reached"))
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(String(data)) as {
        readonly id?: number
        readonly result?: unknown
        readonly error?: { readonly message: string }
      }
      if (message.id === undefined) return
      if (message.error !== undefined) return end(new Error(message.error.message))
      answers.push(message.result)
      ask()
    }
  })

/** Bytes of a heap after a collection. */
export interface Heap {
  /** What the program holds. */
  readonly data: number
  /** Machine code, byte code and what V8 notes about them. */
  readonly code: number
}

/**
 * Asked after two collections, the second for what the finalizers of the first let go of. Code is counted by itself: V8
 * goes on compiling for hours, function by function and again after each wrong guess, and what that takes is bounded by
 * the program and not by what it has done.
 */
const heap = async (logs: string): Promise<Heap> => {
  const expression = `(() => { const { bytecode_and_metadata_size: byte, code_and_metadata_size: machine } = process.getBuiltinModule("v8").getHeapCodeStatistics(); return [process.memoryUsage().heapUsed, byte + machine] })()`
  const answers = await inspect(logs, [
    ["HeapProfiler.collectGarbage"],
    ["HeapProfiler.collectGarbage"],
    ["Runtime.evaluate", { expression, returnByValue: true }]
  ])
  const { exceptionDetails, result } = answers[2] as {
    readonly exceptionDetails?: { readonly text: string }
    readonly result: { readonly value: readonly [used: number, code: number] }
  }
  if (exceptionDetails !== undefined) throw new Error(`the heap cannot be read: ${exceptionDetails.text}`)
  const [used, code] = result.value
  return { data: used - code, code }
}

/** Figures of `/metrics` by name; those with labels are added up. */
export type Figures = ReadonlyMap<string, number>

export const figures = (text: string): Figures => {
  const found = new Map<string, number>()
  for (const line of text.split("\n")) {
    const [, name, value] = /^(\w+)(?:\{[^}]*\})? (\S+)$/.exec(line) ?? []
    if (name !== undefined) found.set(name, (found.get(name) ?? 0) + Number(value))
  }
  return found
}

export const read = async (process: Process): Promise<Figures | undefined> => {
  const answer = await process.ask({ path: "/metrics?format=prometheus", token: secret }, 10_000)
  return answer?.status === 200 ? figures(answer.text) : undefined
}

export interface Look {
  readonly cpuSeconds: number
  readonly heap: Heap
  readonly figures: Figures
}

/**
 * A look at a process; undefined where it is down or does not answer. What the look itself cost is in none of its
 * figures but `after`.
 */
export const look = async (
  process: Process
): Promise<{ readonly look: Look; readonly cpuAfter: number } | undefined> => {
  const before = await read(process)
  if (before === undefined) return undefined
  const seen = await heap(process.logs).catch(() => undefined)
  const after = await read(process)
  if (seen === undefined || after === undefined) return undefined
  const cpu = "process_cpu_seconds_total"
  return {
    look: { cpuSeconds: before.get(cpu) ?? Number.NaN, heap: seen, figures: before },
    cpuAfter: after.get(cpu) ?? Number.NaN
  }
}
