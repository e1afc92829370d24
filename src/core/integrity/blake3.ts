/**
 * BLAKE3 of texts: the hash of the trees of records (D41), and what tells one content of a record from another.
 *
 * By WebAssembly: JavaScript took five times as long for an id, and half a millisecond for a node over 256 children,
 * which a changed record of a large table pays. Whatever imports this waits until it is compiled, about 10 ms; of the
 * doors only the servers do, and nothing of the engine or the language.
 */
import { createBLAKE3 } from "hash-wasm"

const hasher = await createBLAKE3()

/** 64 hexadecimal digits, of the text's UTF-8. */
export const blake3 = (text: string): string => hasher.init().update(text).digest("hex")
