/**
 * Secrets in force: read where they are used and not stored, because a reload replaces them while the process runs.
 *
 * Only a secret from a file can be reloaded: a process's environment never changes. If a file cannot be used, the old
 * value stays in force and the fault is reported, since a service without its secret is down.
 */
import * as Settings from "../../core/settings/settings.ts"

/** Result of reloading one secret, or the TLS files; the value itself is never shown. */
export interface Reloaded {
  readonly what: "secret" | "certificate"
  /** Where the value comes from: a `_FILE` variable or a key of the configuration file. */
  readonly name: string
  readonly outcome: "changed" | "unchanged" | { readonly fault: string }
  /** Warnings about the secret in force now. */
  readonly warnings?: ReadonlyArray<string> | undefined
}

/** A reloaded value, with warnings to report. */
interface Reread<A> {
  readonly value: A
  readonly warnings?: ReadonlyArray<string>
}

export class Secrets {
  private readonly steps: Array<() => Reloaded | undefined> = []
  private readonly derived: Array<() => void> = []

  constructor(private readonly sources: Settings.ReadSources) {}

  /** Getter of a setting's current value. */
  hold<A>(knob: Settings.Knob<A>, value: A): () => A {
    return this.follow("secret", `${knob.env}_FILE`, value, (faults) =>
      Settings.rereadSecret(knob, this.sources, faults)
    )
  }

  /** Getter of a secret whose file a key of the configuration file names; an absent one is not reloaded. */
  holdFile(name: string, path: string, value: string | undefined): () => string | undefined {
    return this.follow("secret", name, value, (faults) => ({
      value: Settings.tokenFile(name, path, this.sources, faults)
    }))
  }

  /** Getter of a value that is computed now, and again after each reload. */
  derive<A>(compute: () => A): () => A {
    let value = compute()
    this.derived.push(() => {
      value = compute()
    })
    return () => value
  }

  /** Reloads every file; each usable value is in force when this returns. */
  reload(): ReadonlyArray<Reloaded> {
    const outcomes = this.steps.flatMap((step) => step() ?? [])
    for (const refresh of this.derived) refresh()
    return outcomes
  }

  /**
   * Getter of a value that `reread` reloads; the old value stays if that adds a fault or has nothing to read. `name`:
   * where the value comes from.
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
