/**
 * Classifies errors of SQLite, for every layer over an embedded SQLite file.
 *
 * In one place, because the driver's error hides some causes deep, and each port has an error type of its own.
 */
import { DatabaseError } from "../../ports/Database.ts"

interface SqliteFailure {
  readonly reason: "damaged" | "locked" | "full" | "failed"
  readonly message: string
}

export const classify = (error: unknown): SqliteFailure => {
  const codes: Array<string> = []
  const words: Array<string> = []
  for (
    let at: unknown = error;
    typeof at === "object" && at !== null && words.length < 8;
    at = "cause" in at ? at.cause : undefined
  ) {
    if ("code" in at && typeof at.code === "string") codes.push(at.code)
    if ("message" in at && typeof at.message === "string") words.push(at.message)
  }
  const code = codes.join(" ")
  const message = words.at(-1) ?? String(error)
  const reason = /CORRUPT|NOTADB/.test(code)
    ? "damaged"
    : /BUSY|LOCKED/.test(code)
      ? "locked"
      : /FULL/.test(code)
        ? "full"
        : "failed"
  return { reason, message: code === "" ? message : `${message} (${codes.at(-1)})` }
}

/** An error of SQLite as the error of a store. */
export const failure = (error: unknown): DatabaseError => {
  if (error instanceof DatabaseError) return error
  const { message, reason } = classify(error)
  return new DatabaseError({ reason: reason === "full" ? "failed" : reason, message, cause: error })
}
