/**
 * The order in which test files run: one that starts processes and waits for them, one that only computes, in turn.
 *
 * Why: files that wait leave a core idle. The runner's own order puts them together, behind those that compute, because
 * they are short texts. Those with a browser take the longest and come first of those that wait, so that none of them
 * is left alone at the end, but not at once.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Folders whose tests start processes, servers or browsers. */
const waiting = /\/test\/(?:live|browser|hostile|package|scheduler|host|sim)\//
const withBrowser = /\/test\/browser\//

type Files = ReadonlyArray<TestSpecification>

const parted = (files: Files, pattern: RegExp): readonly [Files, Files] => [
  files.filter(({ moduleId }) => pattern.test(moduleId)),
  files.filter(({ moduleId }) => !pattern.test(moduleId))
]

const inTurn = ([some, others]: readonly [Files, Files]): Files => {
  const longer = some.length > others.length ? some : others
  return longer.flatMap((_, i) => [some[i], others[i]]).filter((file) => file !== undefined)
}

export class Interleaved extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const [wait, compute] = parted(await super.sort(files), waiting)
    return [...inTurn([inTurn(parted(wait, withBrowser)), compute])]
  }
}
