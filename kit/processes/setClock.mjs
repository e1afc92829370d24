/**
 * Loaded before a program (`--import`): its time of day is the machine's, moved as `SVC_TEST_CLOCK` says, a file that a
 * test writes (`systemClock.ts`).
 *
 * Time that goes by (`performance`, timers) is left alone, as it is where a clock is set.
 */
import { readFileSync } from "node:fs"

const RealDate = Date
const file = process.env.SVC_TEST_CLOCK
const begun = performance.now()
/** Between two looks at the file. */
const lookMs = 100

let moved = { aheadSecs: 0, rate: 1 }
let seen = ""
let lookedAt = Number.NEGATIVE_INFINITY

const now = () => {
  const at = performance.now()
  if (at - lookedAt > lookMs) {
    lookedAt = at
    const text = readFileSync(file, "utf8")
    if (text !== seen) process.stdout.write(`clock set: ${text}\n`)
    seen = text
    moved = JSON.parse(text)
  }
  return Math.round(RealDate.now() + moved.aheadSecs * 1000 + (moved.rate - 1) * (at - begun))
}

globalThis.Date = new Proxy(RealDate, {
  apply: () => new RealDate(now()).toString(),
  construct: (target, args) => new target(...(args.length === 0 ? [now()] : args)),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name))
})
