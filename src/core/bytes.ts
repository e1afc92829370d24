/**
 * Joins pieces of bytes: bodies and streams come in pieces, but text and sockets need the whole.
 */

/** All pieces in one array; a single piece is not copied. */
export const joined = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  if (pieces.length === 1) return pieces[0]!
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}
