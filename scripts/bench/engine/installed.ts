/**
 * Opens a package of the bench by name.
 *
 * Why not a plain import: the project is type-checked and tested where these packages are not installed, so each peer
 * writes down the few types it uses and the compiler never looks for the package.
 */
export const installed = <T>(name: string): Promise<T> => import(name) as Promise<T>
