/**
 * The heap of this process: its limit, and its use after a full collection (D43).
 *
 * The collector reports when it is done; nothing is counted per change. While the heap is full a collection is forced
 * now and then, because a service that refuses work makes hardly any garbage to start one; the pauses are long beside a
 * collection's time.
 *
 * Free space between objects that fits no object counts as used: two texts of 85 to 128 KB fill one of V8's pages of
 * 256 KiB, and the rest fits no other of that size. How much that is shows when the heap adds a page though others have
 * free space, and for certain when its pages are about to reach the limit: V8 would then collect by itself, and abort
 * if that frees no page, so a collection is forced, and the space it leaves free counts as unfit.
 */
import { readFileSync } from "node:fs"
import { totalmem } from "node:os"
import { constants, PerformanceObserver } from "node:perf_hooks"
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect, Layer } from "effect"
import { reasonOf } from "../../core/reason.ts"
import { afterCollection, limitOf, type Memory, machineBytesOf, unusedMemory } from "../../core/record/memory.ts"
import { Heap, unwatchedHeap } from "../../ports/ProcessFigures.ts"

const mebibyte = 2 ** 20
/** Bytes that V8 adds to `--max-old-space-size` for young objects: three halves of the largest size. */
const youngBytes = 48 * mebibyte
/** Pause between two forced collections while the heap is full, and its least ratio to the last one's time. */
const pauseMs = 1_000
const pauseFactor = 20
/** Interval of looks at the pages, in an idle process too; one takes some 20 µs. */
const lookMs = 250
/** Least pause between two looks under load, where 100 MB may come in 250 ms. */
const lookAgainMs = 5
/** The pages are near the limit when less than this, or this share of it, is left: a large request takes as much. */
const nearBytes = 6 * mebibyte
const nearShare = 0.03
/** A start measures again when it has allocated this share of the limit since the last collection. */
const worthACollection = 0.01

/** Memory limits of the container; empty if there is no such file. */
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
  /** Bytes that objects can take without another page. */
  readonly free: number
  /** All bytes. */
  readonly all: number
}

/** Pages of old objects: young ones are mostly garbage, and have pages of their own. */
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

/** Bytes of young objects too large for a page: long texts that a start loads are among them for a while. */
const youngLargeBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_large_object_space")?.space_used_size ?? 0

/** Looks at the pages often enough to see them grow between two collections. */
class OldSpace {
  private before = oldPages()
  /** Free bytes that fit no new object. */
  private unfit = 0
  private isCollected = false
  private nearAt = 0

  look(): void {
    const now = oldPages()
    // Right after a collection free memory says nothing about what fits.
    if (!this.isCollected && now.all > this.before.all) this.unfit = now.free
    this.isCollected = false
    this.before = now
  }

  collected(): void {
    this.isCollected = true
  }

  /** Called after a forced collection, which has returned every page that it could. */
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

  /** Bytes of objects, and of unfit space between them. */
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
  // By default V8 ends the process after four collections in a row that free little. Here they are how a full heap is
  // detected, and the requests refused then keep it from filling up.
  setFlagsFromString("--no-detect-ineffective-gcs-near-heap-limit")
  const machineBytes = machineBytesOf(containerLimits, totalmem())
  const heapBytes = getHeapStatistics().heap_size_limit - youngBytes
  const limitBytes = limitOf(heapBytes, machineBytes, percent)
  const space = new OldSpace()
  let memory: Memory = { usedBytes: space.bytes, limitBytes, isFull: false }
  let gc: (() => void) | undefined
  let timer: NodeJS.Timeout | undefined
  /** Earliest time of another collection because the pages are near the limit. */
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
      // The timer is cleared only after the collection, whose report would otherwise start a second timer.
      const pause = memory.isFull ? Math.max(pauseMs, pauseFactor * collect()) : undefined
      timer = undefined
      if (pause !== undefined) again(pause)
    }, ms).unref()
  }
  const note = (): void => {
    space.collected()
    memory = afterCollection(memory, space.bytes)
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
        // The first collection finds the garbage; the second returns the pages left almost empty. A heap that is nearly
        // full must not count garbage either.
        collect()
        collect()
      }
    },
    // On a machine without a container the rest is for other programs.
    warning: machineBytes < totalmem() ? unusedMemory(heapBytes, machineBytes, percent) : undefined,
    close: () => {
      observer.disconnect()
      clearInterval(looking)
      clearTimeout(timer)
    }
  }
}

/**
 * `percent`: share of the machine's memory that the heap may take. `limits`: content of the container's limit files,
 * which may be lower. Deno does not report collections.
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
