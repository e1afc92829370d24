/**
 * The order in which test files run: one that starts processes and waits for them, one that only computes, in turn.
 *
 * Why: files that wait leave a core idle. The runner's own order puts them together, behind those that compute, because
 * they are short texts.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Folders whose tests start processes, servers or browsers. */
const waiting = /\/test\/(?:live|browser|hostile|package|scheduler|host|sim)\//

export class Interleaved extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const sorted = await super.sort(files)
    const wait = sorted.filter(({ moduleId }) => waiting.test(moduleId))
    const compute = sorted.filter(({ moduleId }) => !waiting.test(moduleId))
    const longer = wait.length > compute.length ? wait : compute
    return longer.flatMap((_, i) => [wait[i], compute[i]]).filter((file) => file !== undefined)
  }
}
