/** Whether a figure meets its goal, in words; with `--check` one that does not makes the process end with 1. */
export const judged = (isMet: boolean): string => {
  if (!isMet && process.argv.includes("--check")) process.exitCode = 1
  return isMet ? "met" : "missed"
}
