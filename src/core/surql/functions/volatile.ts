/**
 * Functions whose result changes by itself or depends on the session: known by name, refused in live views, failing
 * elsewhere.
 *
 * Why so: an existing name must be told apart from a typo, and a pure core has neither randomness nor a clock.
 */
import { ownText, raise } from "../evaluate/failure.ts"
import type { Table } from "./define.ts"
import { volatile as unstable } from "./define.ts"

const names = [
  "rand",
  "rand::bool",
  "rand::duration",
  "rand::enum",
  "rand::float",
  "rand::id",
  "rand::int",
  "rand::string",
  "rand::time",
  "rand::ulid",
  "rand::uuid",
  "rand::uuid::v4",
  "rand::uuid::v7",
  "array::shuffle",
  "session::ac",
  "session::db",
  "session::id",
  "session::ip",
  "session::ns",
  "session::origin",
  "session::rd",
  "session::token",
  "crypto::argon2::generate",
  "crypto::bcrypt::generate",
  "crypto::pbkdf2::generate",
  "crypto::scrypt::generate"
]

export const volatile: Table = Object.fromEntries(
  names.map((name) => [name, unstable(() => raise`${ownText(name)}() is not deterministic, and not available here`)])
)
