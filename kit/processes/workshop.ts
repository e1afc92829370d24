/**
 * Doors and folders that one test needs, put away when that test is over.
 *
 * Why bound to the test and not to a hook: tests that mostly wait for processes run side by side, and a hook of one
 * would put away what another still uses.
 */
import { Door, type DoorOptions, removeFolder, temporaryFolder } from "./Door.ts"

type Finished = (cleanup: () => Promise<void>) => void

export interface Workshop {
  /** A door that serves. */
  readonly start: (options?: DoorOptions) => Promise<Door>
  /** A process that has ended by itself. */
  readonly run: (options: DoorOptions, ...args: ReadonlyArray<string>) => Promise<Door>
  readonly folder: () => string
}

export const workshop = (onTestFinished: Finished): Workshop => {
  const doors: Array<Door> = []
  const folders: Array<string> = []
  onTestFinished(async () => {
    for (const door of doors) await door.close()
    for (const path of folders) removeFolder(path)
  })
  const kept = (door: Door): Door => {
    doors.push(door)
    return door
  }
  return {
    start: async (options = {}) => kept(await Door.start(options)),
    run: async (options, ...args) => {
      const door = kept(await Door.spawn(options, ...args))
      await door.exited
      return door
    },
    folder: () => {
      const path = temporaryFolder()
      folders.push(path)
      return path
    }
  }
}
