/**
 * Before each file of tests: properties of FastCheck draw from the seed that all other tests draw from, and no other.
 * After each test the worker hears the runner: in a file whose tests never wait, its answers would come too late.
 */
import { setImmediate } from "node:timers/promises"
import { FastCheck } from "effect"
import { afterEach } from "vitest"
import { runs, seed } from "../data/random.ts"

FastCheck.configureGlobal({ ...FastCheck.readConfigureGlobal(), seed: seed | 0, numRuns: runs(100) })

afterEach(() => setImmediate())
