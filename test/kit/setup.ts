/**
 * Before each file of tests: properties of FastCheck draw from the seed that all other tests draw from, and no other.
 */
import { FastCheck } from "effect"
import { runs, seed } from "./random.ts"

FastCheck.configureGlobal({ ...FastCheck.readConfigureGlobal(), seed: seed | 0, numRuns: runs(100) })
