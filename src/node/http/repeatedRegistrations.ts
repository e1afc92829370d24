/**
 * Registrations that change nothing, which most are, since they keep a view alive (D9, D63): answered by callback, and
 * carried out once if several come together.
 */
import { Effect, type Scope } from "effect"
import * as RepeatedRegistration from "../../core/view/repeatedRegistration.ts"
import type { Reply } from "../../ports/Front.ts"
import type { Call, RouteAnswer } from "./routes.ts"

type Said = RepeatedRegistration.ParsedRegistration

type Respond<C extends Call, E> = (call: C) => Effect.Effect<RouteAnswer, E, Scope.Scope>

/** The parts of a node that answer registrations. */
interface Parts<C extends Call, E> {
  readonly nowMs: () => number
  /**
   * Answers a registration that changes nothing, or passes the effect that answers, now or later; false: the
   * registration must be carried out.
   */
  readonly known: (said: Said, reply: Reply, pass: (respond: Respond<C, E>) => void) => boolean
  /** Carries a registration out. */
  readonly register: Respond<C, E>
}

/** A registration being carried out, and equal ones that wait for its end. */
interface UnderWay {
  readonly said: Said
  readonly waiting: Set<() => void>
}

/**
 * The attempt of a registration route. Clients that share a view repeat its registration together: the first is carried
 * out, the others wait for it and then change nothing (D63).
 */
export const attempt = <C extends Call, E>({ known, nowMs, register }: Parts<C, E>) => {
  const underWay = new Map<string, UnderWay>()
  const during = (said: Said, work: ReturnType<Respond<C, E>>): typeof work =>
    Effect.suspend(() => {
      const own: UnderWay = { said, waiting: new Set() }
      underWay.set(said.id, own)
      return Effect.ensuring(
        work,
        Effect.sync(() => {
          if (underWay.get(said.id) === own) underWay.delete(said.id)
          for (const decide of own.waiting) decide()
        })
      )
    })
  return ({ json }: Pick<Call, "json">, reply: Reply, pass: (respond: Respond<C, E>) => void): void => {
    const said = RepeatedRegistration.read(json, nowMs())
    if (said === undefined) return pass(register)
    const decide = (): void => {
      const other = underWay.get(said.id)
      if (other !== undefined && RepeatedRegistration.isRepeat(other.said, said)) {
        other.waiting.add(decide)
        return reply.whenGone(() => other.waiting.delete(decide))
      }
      if (!known(said, reply, pass)) pass((call) => during(said, register(call)))
    }
    decide()
  }
}
