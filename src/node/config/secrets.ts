/**
 * Secrets in force: read where they are used and not kept, because a reload replaces them while the process runs.
 *
 * Only what comes from a file can be reloaded: a process's environment is what it was at the start. A file that cannot
 * be used leaves the old value in force and says so, since a service without its secret is down.
 */
import * as Settings from "../../core/settings/settings.ts"

/** Result of reading one secret, or the TLS files, anew; the value itself is never told. */
export interface Reloaded {
  readonly what: "secret" | "certificate"
  /** Origin: a `_FILE` variable or a key of the configuration file. */
  readonly name: string
  readonly outcome: "changed" | "unchanged" | { readonly fault: string }
  /** About the secret in force now. */
  readonly warnings?: ReadonlyArray<string> | undefined
}

/** A value that was read anew, with the results to report. */
interface Reread<A> {
  readonly value: A
  readonly warnings?: ReadonlyArray<string>
}

export class Secrets {
  private readonly steps: Array<() => Reloaded | undefined> = []
  private readonly derived: Array<() => void> = []

  constructor(private readonly sources: Settings.ReadSources) {}

  /** The value of a setting, as it is when it is asked for. */
  hold<A>(knob: Settings.Knob<A>, value: A): () => A {
    return this.follow("secret", `${knob.env}_FILE`, value, (faults) => Settings.reread(knob, this.sources, faults))
  }

  /** The value of a key of the configuration file that names a file; absent ones are not followed. */
  holdFile(name: string, path: string, value: string | undefined): () => string | undefined {
    return this.follow("secret", name, value, (faults) => ({
      value: Settings.tokenFile(name, path, this.sources, faults)
    }))
  }

  /** Computed now, and again after each reload. */
  derive<A>(compute: () => A): () => A {
    let value = compute()
    this.derived.push(() => {
      value = compute()
    })
    return () => value
  }

  /** Reads every file anew; each that can be used is in force when this returns. */
  reload(): ReadonlyArray<Reloaded> {
    const outcomes = this.steps.flatMap((step) => step() ?? [])
    for (const refresh of this.derived) refresh()
    return outcomes
  }

  /**
   * A value that `reread` reads anew, unless it names a fault or knows nothing to read; `name`: where it comes from.
   */
  follow<A>(
    what: Reloaded["what"],
    name: string,
    initial: A,
    reread: (faults: Array<string>) => Reread<A> | undefined
  ): () => A {
    let value = initial
    this.steps.push(() => {
      const faults: Array<string> = []
      const found = reread(faults)
      if (faults[0] !== undefined) return { what, name, outcome: { fault: faults.join("; ") } }
      if (found === undefined) return undefined
      const changed = JSON.stringify(found.value) !== JSON.stringify(value)
      if (changed) value = found.value
      return { what, name, outcome: changed ? "changed" : "unchanged", warnings: found.warnings }
    })
    return () => value
  }
}
