/**
 * A view's answer as the bytes of its JSON, written with pauses: a result may take hundreds of megabytes, and writing
 * it in one turn would hold up all other work.
 */
import type { Slices } from "../../core/surql/evaluate/scope.ts"
import type { ViewAnswer, ViewPlaced } from "./viewTypes.ts"

const encoder = new TextEncoder()

/** Characters that are written between two pauses, and the least that one piece holds. */
const charsPerSlice = 262_144

/** The text that JSON.stringify gives, in pieces; rows are written one by one. */
export function* written(answer: ViewAnswer | ViewPlaced): Slices<ReadonlyArray<Uint8Array>> {
  const pieces: Array<Uint8Array> = []
  let text = "{"
  let comma = ""
  for (const [name, value] of Object.entries(answer)) {
    text += `${comma}${JSON.stringify(name)}:`
    comma = ","
    if (!Array.isArray(value)) {
      text += JSON.stringify(value)
      continue
    }
    text += "["
    for (let i = 0; i < value.length; i++) {
      if (text.length > charsPerSlice) {
        pieces.push(encoder.encode(text))
        text = ""
        yield
      }
      text += i === 0 ? JSON.stringify(value[i]) : `,${JSON.stringify(value[i])}`
    }
    text += "]"
  }
  pieces.push(encoder.encode(`${text}}`))
  return pieces
}
