/**
 * What the page and its server both know of pages of the board.
 */
export const postsPerPage = 5
