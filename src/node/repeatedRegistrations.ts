/**
 * `POST /view/register` by callback, where it says again what is known: most do, since a view lives on by them (D9,
 * D63).
 *
 * Whatever else it says, whatever is refused or odd is left to the declared route, so that there is one answer to each.
 */
import { Either } from "effect"
import * as SaidAgain from "../core/view/saidAgain.ts"
import type { HotRepeat } from "../ports/Front.ts"
import { type Declaring, scopeOf } from "../protocol/access.ts"
import type { makeJudge } from "./bearer.ts"
import * as Answers from "./httpAnswers.ts"
import * as Bodies from "./httpBodies.ts"

/** What a node gives for its hot route. */
export interface RepeatParts {
  readonly api: Declaring
  readonly judge: ReturnType<typeof makeJudge>
  readonly nowMs: () => number
  /** Whether the node takes requests now; `registration` as in `HotRoute`. */
  readonly isTaking: (registration: string | undefined) => boolean
  /** Answers a registration that changes nothing; false: it has not. */
  readonly answer: (said: SaidAgain.Said, reply: Parameters<HotRepeat["accept"]>[1]) => boolean
}

const path = "/view/register"
/** A longer one costs more to read than a fiber. */
const maxBodyBytes = 65_536

export const hot = ({ answer, api, isTaking, judge, nowMs }: RepeatParts): HotRepeat => {
  const scope = scopeOf(api, `POST ${path}`)
  return {
    path,
    maxBodyBytes,
    wants: (authorization, registration) => "caller" in judge(authorization, scope) && isTaking(registration),
    accept: (body, reply) => {
      const json = Bodies.parseJson(body)
      const said = Either.isRight(json) ? SaidAgain.read(json.right, nowMs()) : undefined
      if (said === undefined || !answer(said, reply)) reply.pass()
    },
    tooLarge: Answers.toAnswer(Answers.tooLarge(maxBodyBytes)),
    notText: Answers.toAnswer(Answers.notText)
  }
}
