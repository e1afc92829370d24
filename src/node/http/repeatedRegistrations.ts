/**
 * Registrations that say again what is known, which most do, since a view lives on by them (D9, D63): answered by
 * callback, and written down once where several come together.
 */
import { Context, Effect, Layer } from "effect"
import * as RepeatedRegistration from "../../core/view/repeatedRegistration.ts"
import type { Reply } from "../../ports/Front.ts"
import type { Call } from "./routes.ts"

/** A registration that is carried out, and what waits for its end. */
interface First {
  readonly said: RepeatedRegistration.ParsedRegistration
  readonly waiting: Set<() => void>
}

interface UnderWayShape {
  /**
   * Calls back when the registration is over that says the same and is carried out now; gives what stops that.
   * Undefined: there is none.
   */
  readonly whenOver: (said: RepeatedRegistration.ParsedRegistration, done: () => void) => (() => void) | undefined
  /** Answers by `known` where that gives an answer, else by `register`: one at a time of those that say the same. */
  readonly once: <A, E, R>(
    said: RepeatedRegistration.ParsedRegistration | undefined,
    known: (said: RepeatedRegistration.ParsedRegistration) => Effect.Effect<A, E, R> | undefined,
    register: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
}

/**
 * Registrations that are carried out, by what they say. Clients that share a view repeat its registration together: the
 * first is written, and the others wait for it and are then found to change nothing (D63).
 */
export class UnderWay extends Context.Tag("node/UnderWay")<UnderWay, UnderWayShape>() {
  static readonly layer: Layer.Layer<UnderWay> = Layer.sync(UnderWay, () => {
    const firsts = new Map<string, First>()

    const whenOver: UnderWayShape["whenOver"] = (said, done) => {
      const first = firsts.get(said.id)
      if (first === undefined || !RepeatedRegistration.isRepeat(first.said, said)) return undefined
      first.waiting.add(done)
      return () => void first.waiting.delete(done)
    }

    const during = <A, E, R>(
      said: RepeatedRegistration.ParsedRegistration,
      register: Effect.Effect<A, E, R>
    ): Effect.Effect<A, E, R> =>
      Effect.suspend(() => {
        const first: First = { said, waiting: new Set() }
        firsts.set(said.id, first)
        return Effect.ensuring(
          register,
          Effect.sync(() => {
            if (firsts.get(said.id) === first) firsts.delete(said.id)
            for (const done of first.waiting) done()
          })
        )
      })

    const once: UnderWayShape["once"] = (said, known, register) => {
      if (said === undefined) return register
      const over = Effect.async<boolean>((resume) => {
        const abandon = whenOver(said, () => resume(Effect.succeed(true)))
        if (abandon === undefined) resume(Effect.succeed(false))
        else return Effect.sync(abandon)
      })
      const decide: typeof register = Effect.flatMap(over, (hasWaited) =>
        hasWaited ? decide : (known(said) ?? during(said, register))
      )
      return decide
    }
    return { once, whenOver }
  })
}

/** The parts of a node that answer repeated registrations. */
interface RepeatParts {
  readonly nowMs: () => number
  readonly underWay: UnderWayShape
  /** Answers a registration that changes nothing; false: it has not, and passes neither. */
  readonly answer: (said: RepeatedRegistration.ParsedRegistration, reply: Reply, pass: () => void) => boolean
}

/**
 * The first attempt of a registration route: most registrations only repeat what is known, to keep their view alive.
 */
export const first =
  ({ answer, nowMs, underWay }: RepeatParts) =>
  ({ json }: Pick<Call, "json">, reply: Reply, pass: () => void): void => {
    const said = RepeatedRegistration.read(json, nowMs())
    if (said === undefined) return pass()
    const decide = (): void => {
      if (!answer(said, reply, pass)) pass()
    }
    const abandon = underWay.whenOver(said, decide)
    if (abandon === undefined) decide()
    else reply.whenGone(abandon)
  }
