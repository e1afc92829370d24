/**
 * BLAKE3 of texts, for the trees of records (D41).
 *
 * By WebAssembly: in JavaScript an id took five times as long, and a node over 256 children half a millisecond, which
 * each changed record of a large table pays. The module is there once it is compiled, a few milliseconds after the
 * start; nothing of the engine or the language needs it.
 */
import { createBLAKE3 } from "hash-wasm"

const hasher = await createBLAKE3()

/** 64 hexadecimal digits, of the text's UTF-8. */
export const blake3 = (text: string): string => hasher.init().update(text).digest("hex")
