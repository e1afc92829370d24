/**
 * Addresses of host names.
 *
 * A port, because look-up belongs to the runtime, and because addresses decide which host may be sent a secret, not by
 * names (D15).
 */
import { Context, Effect, Layer } from "effect"

/** Resolves host names; `layerOf` for names known beforehand. */
export class Names extends Context.Tag("ports/Names")<
  Names,
  {
    /** All addresses; none when the name is unknown. */
    readonly resolve: (host: string) => Effect.Effect<ReadonlyArray<string>>
  }
>() {
  static readonly layerOf = (known: { readonly [host: string]: ReadonlyArray<string> }): Layer.Layer<Names> =>
    Layer.succeed(Names, { resolve: (host) => Effect.succeed(Object.hasOwn(known, host) ? (known[host] ?? []) : []) })
}
