/**
 * What a host name stands for, as addresses.
 *
 * A port, because asking is a runtime's business, and because who may hear a secret is decided by addresses, not by
 * names (D15).
 */
import { Context, Effect, Layer } from "effect"

/** Resolves host names; `layerOf` for names known beforehand. */
export class Names extends Context.Tag("ports/Names")<
  Names,
  {
    /** All addresses; none when nobody knows the name. */
    readonly resolve: (host: string) => Effect.Effect<ReadonlyArray<string>>
  }
>() {
  static readonly layerOf = (known: { readonly [host: string]: ReadonlyArray<string> }): Layer.Layer<Names> =>
    Layer.succeed(Names, { resolve: (host) => Effect.succeed(Object.hasOwn(known, host) ? (known[host] ?? []) : []) })
}
