/**
 * Changes into the scheduler's `/ingest`: everything that is there at the beginning, then a steady run of what happens.
 *
 * One request at a time: a feed must keep the order of its changes, and a service that is busy slows it down by
 * answering later.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Change, World } from "./data.ts"

/** As large as a request stays small. */
const batch = 400
const tickMs = 100

const post = async (url: string, changes: ReadonlyArray<Change>, signal?: AbortSignal): Promise<void> => {
  const answer = await fetch(`${url}/ingest`, { method: "POST", body: JSON.stringify(changes), signal: signal ?? null })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`/ingest answered ${answer.status}: ${text.slice(0, 200)}`)
}

export const fill = async (url: string, changes: ReadonlyArray<Change>): Promise<void> => {
  for (let from = 0; from < changes.length; from += batch) await post(url, changes.slice(from, from + batch))
}

export interface Feed {
  readonly stop: () => Promise<void>
}

/**
 * Sends `perSecond` things that happen each second until it is stopped; what is not taken is sent again, and said once.
 */
export const run = (url: string, world: World, perSecond: number, complain: (what: string) => void): Feed => {
  const stopping = new AbortController()
  const pause = (ms: number): Promise<void> => sleep(ms, undefined, { signal: stopping.signal }).catch(() => {})
  const loop = async (): Promise<void> => {
    let owed = 0
    let waiting: ReadonlyArray<Change> = []
    let failing = false
    while (!stopping.signal.aborted) {
      owed = Math.min(owed + (perSecond * tickMs) / 1000, perSecond)
      if (waiting.length === 0) waiting = Array.from({ length: Math.floor(owed) }, () => world.next()).flat()
      owed -= Math.floor(owed)
      try {
        for (; waiting.length > 0; waiting = waiting.slice(batch))
          await post(url, waiting.slice(0, batch), stopping.signal)
        failing = false
      } catch (error) {
        if (!failing && !stopping.signal.aborted) complain(`the feed waits: ${String(error)}`)
        failing = true
        await pause(500)
      }
      await pause(tickMs)
    }
  }
  const running = loop()
  return {
    stop: () => {
      stopping.abort()
      return running
    }
  }
}
