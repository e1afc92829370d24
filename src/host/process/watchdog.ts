/**
 * The watchdog of this process: its shared memory, its thread, and its file in the data folder (D48).
 *
 * Built behind the layer that locks the folder: its file is about the process before this one, and no other process may
 * be about to write it. Without a folder the watchdog still ends a turn that is too long, and remembers nothing.
 */

import { createHash } from "node:crypto"
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, Layer } from "effect"
import { EvaluationNote } from "../../core/ivm/evaluating.ts"
import { reasonOf } from "../../core/reason.ts"
import { type Bounds, cellCount, cells } from "../../core/view/watch.ts"
import { bytesFor, Labels, nameBytes } from "../../core/view/watchLabels.ts"
import { inFile } from "../../ports/SavedState.ts"
import { turnTooLong } from "../../ports/StartFault.ts"
import { type Unfinished, Watchdog, type WatchdogShape } from "../../ports/Watchdog.ts"
import type { ThreadData } from "./watchdogThread.ts"

interface Options extends Bounds {
  /** Most views at a time. */
  readonly maxViews: number
  /** The data folder; undefined: nothing is stored. */
  readonly folder: string | undefined
  readonly logFormat: "json" | "text" | undefined
}

/** Interval of the main thread's beats. */
const beatMs = 100
/** Most views with a slot of their own; beyond that the newest are not named. */
const mostSlots = 1_000_000
/** Slots besides those of registered views: for registrations under way, and for views released lately. */
const spare = 1024

/** Names this run of the machine, where the system does (Linux). */
const bootId = (): string | undefined => {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
  } catch {
    return undefined
  }
}

/**
 * Reads the file of the previous process, which exists if that process ended during an evaluation. A process that ended
 * with its machine did not end because of the evaluation.
 */
const readUnfinished = (path: string): Unfinished | undefined => {
  if (!existsSync(path)) return undefined
  const left = JSON.parse(readFileSync(path, "utf8")) as {
    readonly format?: unknown
    readonly query?: unknown
    readonly id?: unknown
    readonly since?: unknown
    readonly boot?: unknown
  }
  const { boot, format, id, query, since } = left
  if (format !== 1 || typeof id !== "string" || typeof query !== "string" || typeof since !== "number")
    throw new Error("it is of another version")
  if (boot !== undefined && boot !== bootId()) return undefined
  return { id, query, since }
}

const digest = (params: string, surql: string) => createHash("sha256").update(`${params}\n${surql}`)

/** Beats while the scope is open; a thread that cannot be started only causes a warning. */
const watched = (data: ThreadData) =>
  Effect.acquireRelease(
    Effect.try(() => {
      const memory = new Int32Array(data.memory)
      const file = new URL(`./watchdogThread${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url)
      // A small heap: the thread stores nothing, and every process has one.
      const thread = new Worker(file, {
        workerData: data,
        name: "watchdog",
        execArgv: [],
        resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 }
      })
      const runFork = Effect.runFork
      thread.on("error", (error) => void runFork(Effect.logError(`the watchdog has ended: ${reasonOf(error)}`)))
      thread.unref()
      const beats = setInterval(() => void Atomics.add(memory, cells.beat, 1), beatMs)
      beats.unref()
      return { thread, beats }
    }),
    ({ beats, thread }) =>
      Effect.promise(async () => {
        clearInterval(beats)
        await thread.terminate()
        // A process that stops in order has not ended during an evaluation.
        if (data.file !== undefined) rmSync(data.file, { force: true })
      })
  ).pipe(Effect.catchAll((error) => Effect.logWarning(`no watchdog: ${reasonOf(error)}`)))

const make = (options: Options) =>
  Effect.gen(function* () {
    const { folder, logFormat, maxTurnMs, maxViews, slowMs } = options
    const file = folder === undefined ? undefined : join(folder, "evaluating.json")
    const quarantine = folder === undefined ? undefined : yield* inFile(join(folder, "quarantine.json"))
    const unfinished = yield* Effect.try(() => (file === undefined ? undefined : readUnfinished(file))).pipe(
      Effect.catchAll((error) =>
        Effect.as(
          Effect.logWarning(`${file} says what the last process was evaluating and cannot be read: ${reasonOf(error)}`),
          undefined
        )
      )
    )
    const kept = quarantine === undefined ? undefined : yield* Effect.orDie(quarantine.load)
    const memory = new SharedArrayBuffer(cellCount * Int32Array.BYTES_PER_ELEMENT)
    const shared = new SharedArrayBuffer(bytesFor(Math.min(mostSlots, maxViews + Math.ceil(maxViews / 4) + spare)))
    const labels = new Labels(new Uint8Array(shared))
    if (slowMs > 0 || maxTurnMs > 0) {
      yield* watched({
        memory,
        labels: shared,
        bounds: { slowMs, maxTurnMs },
        file,
        boot: bootId(),
        logFormat: logFormat ?? (process.stdout.isTTY ? "text" : "json"),
        exitCode: turnTooLong
      })
    }
    return {
      evaluating: new EvaluationNote(new Int32Array(memory), (slot) => labels.close(slot)),
      open: ({ id, params, surql }) => labels.open(digest(params, surql).digest(), id),
      queryOf: ({ params, surql }) =>
        digest(params, surql)
          .digest("hex")
          .slice(0, 2 * nameBytes),
      unfinished,
      kept,

      keep: (text) =>
        quarantine === undefined
          ? Effect.void
          : Effect.zipRight(
              Effect.mapError(quarantine.save(text), ({ message }) => message),
              Effect.mapError(
                Effect.try(() => rmSync(file!, { force: true })),
                (error) => `${file}: ${reasonOf(error)}`
              )
            )
    } satisfies WatchdogShape
  })

/** Watches this process while the scope is open. */
export const layer = (options: Options): Layer.Layer<Watchdog> =>
  Layer.scoped(Watchdog, make(options)).pipe(Layer.provide([NodeFileSystem.layer, NodePath.layer]))

/** The stores, and behind them a watchdog, since they lock the folder in which it stores its file. */
export const layerBehind = <A, E, R>(stores: Layer.Layer<A, E, R>, options: Options): Layer.Layer<A | Watchdog, E, R> =>
  Layer.flatMap(stores, (context) => Layer.merge(Layer.succeedContext(context), layer(options)))
