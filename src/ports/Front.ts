/**
 * What a node asks of the server in front of its routes: the routes too hot for a fiber each, and a word before it stops.
 *
 * The same decisions serve the declared routes, so a server without a front (tests, other deployments) behaves alike;
 * it is only slower.
 */
import { Context, Effect, Layer } from "effect"

/** A response as data. */
export interface Answer {
  readonly status: number
  /** Beyond content type and length. */
  readonly headers?: { readonly [name: string]: string }
  /** JSON text. */
  readonly body: string
}

/** One exact method and path, answered by callbacks. */
export interface HotRoute {
  readonly method: string
  readonly path: string
  readonly maxBodyBytes: number
  /** What can be refused before the body is read; undefined to go on. */
  readonly admit: (authorization: string | undefined) => Answer | undefined
  /** `answer` is called exactly once, now or later. */
  readonly accept: (body: string, answer: (answer: Answer) => void) => void
  readonly tooLarge: Answer
  readonly notText: Answer
}

export class HotRoutes extends Context.Tag("ports/HotRoutes")<HotRoutes, ReadonlyArray<HotRoute>>() {
  static readonly layerNone: Layer.Layer<HotRoutes> = Layer.succeed(HotRoutes, [])
}

/** Tells long answers to come to their end, before the server waits for what is in flight. */
export class Drain extends Context.Tag("ports/Drain")<Drain, {
  readonly begin: Effect.Effect<void>
  /** Returns once {@link begin} was called. */
  readonly begun: Effect.Effect<void>
}>() {
  static readonly layer: Layer.Layer<Drain> = Layer.effect(
    Drain,
    Effect.map(Effect.makeLatch(false), (latch) => ({ begin: Effect.asVoid(latch.open), begun: latch.await }))
  )
}
