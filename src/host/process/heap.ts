/**
 * The heap of this process: what it may hold, and what a full collection has left of it (D43).
 *
 * The collector tells when it is done; nothing is counted per change. While the heap is full a collection is asked for
 * now and then, because a service that takes nothing makes hardly anything that would start one; pauses are long beside
 * what the collection takes.
 *
 * What lies free between objects and fits none counts as used: of texts of 85 to 128 KB two fill one of V8's pages of
 * 256 KiB, and nothing else of their size goes into the rest. How much that is shows when the heap takes another page
 * though parts of those it has are free, and for certain when its pages are about to reach the limit: V8 would collect
 * then by itself, and abort where that frees no page, so a collection is asked for, and what it leaves free is unfit.
 */
import { readFileSync } from "node:fs"
import { totalmem } from "node:os"
import { constants, PerformanceObserver } from "node:perf_hooks"
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect, Layer } from "effect"
import { reasonOf } from "../../core/reason.ts"
import { collected, limitOf, type Memory, machineBytesOf, unusedMemory } from "../../core/record/memory.ts"
import { Heap, unwatchedHeap } from "../../ports/ProcessFigures.ts"

const mebibyte = 2 ** 20
/** Bytes that V8 adds to `--max-old-space-size` for young objects: three halves of the largest size. */
const youngBytes = 48 * mebibyte
/** Between two collections that are asked for while the heap is full, and how many times as long as the last took. */
const pauseMs = 1_000
const pauseFactor = 20
/** Between two looks at the pages, whether anything is asked of the process or not; one takes some 20 µs. */
const lookMs = 250
/** So long at least between two looks at how near the limit is while much is asked: 100 MB come in 250 ms. */
const lookAgainMs = 5
/** The pages are near the limit when less than this, or this share of it, is left: a large request takes as much. */
const nearBytes = 6 * mebibyte
const nearShare = 0.03
/** A start looks again when it has made so much of the limit since the last collection. */
const worthACollection = 0.01

/** The memory limits of the container; none where there is no such file. */
const containerLimits = (): ReadonlyArray<string> =>
  ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"].flatMap((path) => {
    try {
      return [readFileSync(path, "utf8")]
    } catch {
      return []
    }
  })

interface Pages {
  /** Bytes of objects. */
  readonly used: number
  /** Bytes that can be given to objects, without another page. */
  readonly free: number
  /** All bytes. */
  readonly all: number
}

/** Pages of old objects: young ones are garbage for the most part, and have room of their own. */
const oldPages = (): Pages => {
  let used = 0
  let free = 0
  let all = 0
  for (const space of getHeapSpaceStatistics()) {
    if (space.space_name === "new_space" || space.space_name === "new_large_object_space") continue
    used += space.space_used_size
    free += space.space_available_size
    all += space.space_size
  }
  return { used, free, all }
}

/** Bytes of young objects that are too large for a page: what a start loads of long texts is among them for a while. */
const youngLargeBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_large_object_space")?.space_used_size ?? 0

/** Looks at the pages often enough to see them grow between two collections. */
class OldSpace {
  private before = oldPages()
  /** Free bytes that the objects which come do not fit into. */
  private unfit = 0
  private isCollected = false
  private nearAt = 0

  look(): void {
    const now = oldPages()
    // Memory that a collection has just freed is free by chance.
    if (!this.isCollected && now.all > this.before.all) this.unfit = now.free
    this.isCollected = false
    this.before = now
  }

  collected(): void {
    this.isCollected = true
  }

  /** A full collection, which was asked for, has given back every page that it could. */
  emptied(): void {
    this.collected()
    this.before = oldPages()
    this.unfit = this.before.all - this.before.used
  }

  isNear(limitBytes: number): boolean {
    const now = performance.now()
    if (now - this.nearAt < lookAgainMs) return false
    this.nearAt = now
    return oldPages().all > limitBytes - Math.max(nearBytes, limitBytes * nearShare)
  }

  /** Bytes of objects, and those between them that fit none. */
  get bytes(): number {
    const { all, used } = oldPages()
    return used + Math.min(this.unfit, all - used)
  }
}

const collector = (): (() => void) => {
  setFlagsFromString("--expose-gc")
  return runInNewContext("gc") as () => void
}

const watch = (percent: number, containerLimits: ReadonlyArray<string>) => {
  // Four collections in a row that free little end the process before its heap is full. Here they are no fault: they
  // are how a full heap is known, and the requests refused then keep it from filling up.
  setFlagsFromString("--no-detect-ineffective-gcs-near-heap-limit")
  const machineBytes = machineBytesOf(containerLimits, totalmem())
  const heapBytes = getHeapStatistics().heap_size_limit - youngBytes
  const limitBytes = limitOf(heapBytes, machineBytes, percent)
  const space = new OldSpace()
  let memory: Memory = { usedBytes: space.bytes, limitBytes, isFull: false }
  let gc: (() => void) | undefined
  let timer: NodeJS.Timeout | undefined
  /** When another collection may be asked for because the pages are near the limit. */
  let mayCollectAt = 0
  const collect = (): number => {
    const begun = performance.now()
    gc ??= collector()
    gc()
    space.emptied()
    note()
    const now = performance.now()
    mayCollectAt = now + pauseFactor * (now - begun)
    return now - begun
  }
  const again = (ms: number): void => {
    timer = setTimeout(() => {
      // Cleared behind the collection only: what that finds would begin a second row of timers, and those would double.
      const pause = memory.isFull ? Math.max(pauseMs, pauseFactor * collect()) : undefined
      timer = undefined
      if (pause !== undefined) again(pause)
    }, ms).unref()
  }
  const note = (): void => {
    space.collected()
    memory = collected(memory, space.bytes)
    if (memory.isFull && timer === undefined) again(pauseMs)
  }
  const observer = new PerformanceObserver((list) => {
    // The declarations of Node 20 do not have the field.
    const entries = list.getEntries() as ReadonlyArray<{ readonly detail?: { readonly kind?: number } }>
    if (entries.some(({ detail }) => detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR)) note()
  })
  observer.observe({ entryTypes: ["gc"] })
  const looking = setInterval(() => space.look(), lookMs).unref()
  return {
    shape: {
      memory: () => {
        if (!memory.isFull && space.isNear(limitBytes) && performance.now() >= mayCollectAt) collect()
        return memory
      },
      measured: () => {
        space.look()
        const made = space.bytes + youngLargeBytes()
        if (made < limitBytes * 0.85 || made < memory.usedBytes + limitBytes * worthACollection)
          return { ...memory, usedBytes: Math.min(made, memory.usedBytes) }
        collect()
        return memory
      },
      released: () => {
        // The first collection finds what is garbage; the pages that it leaves almost empty are given back by the next.
        // A heap that is not full yet may be by a hair: it must not count what is gone either.
        collect()
        collect()
      }
    },
    // On a machine without a container the rest is for others.
    warning: machineBytes < totalmem() ? unusedMemory(heapBytes, machineBytes, percent) : undefined,
    close: () => {
      observer.disconnect()
      clearInterval(looking)
      clearTimeout(timer)
    }
  }
}

/**
 * The heap may take so much of the machine's memory, in percent, and a container may take less: `limits`, texts of
 * limit files. Deno tells nothing of its collections.
 */
export const layer = (percent: number, limits = containerLimits()): Layer.Layer<Heap> =>
  Layer.scoped(
    Heap,
    Effect.acquireRelease(
      Effect.try(() => {
        const { supportedEntryTypes } = PerformanceObserver as { readonly supportedEntryTypes?: ReadonlyArray<string> }
        if (supportedEntryTypes?.includes("gc") !== true) throw new Error("this runtime does not tell of collections")
        return watch(percent, limits)
      }),
      ({ close }) => Effect.sync(close)
    ).pipe(
      Effect.flatMap(({ shape, warning }) =>
        Effect.as(warning === undefined ? Effect.void : Effect.logWarning(warning), shape)
      ),
      Effect.catchAll(({ error }) =>
        Effect.as(Effect.logInfo(`the heap has no bound but the runtime's own: ${reasonOf(error)}`), unwatchedHeap)
      )
    )
  )
