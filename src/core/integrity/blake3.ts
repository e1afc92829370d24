/**
 * BLAKE3 of texts: the hash in the Merkle trees of records (D41).
 *
 * By WebAssembly: JavaScript took five times as long for an id, and half a millisecond for a node over 256 children,
 * which a changed record of a large table pays. Importing this file waits about 10 ms until the module is compiled, so
 * only the servers import it, and nothing of the engine or the language.
 */
import { createBLAKE3 } from "hash-wasm"

const hasher = await createBLAKE3()

/** Hash of the text's UTF-8, in 64 hexadecimal digits. */
export const blake3 = (text: string): string => hasher.init().update(text).digest("hex")
