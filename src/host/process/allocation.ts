/**
 * One setting of V8's allocation, made when the process starts.
 *
 * All requests of a server live for a moment. V8 learns for each place in the code whether its objects tend to survive,
 * and then allocates them as old objects at once; after a burst of slow requests (registrations that wait for the
 * store) it does so for every part of every request, and garbage that a scavenge would have dropped for free waits for
 * a full collection. Measured after 10,000 registrations: 4.3 kB of each ingest survived instead of 1.0 kB, and an
 * ingest cost half as much again. V8 never unlearns, so it is told not to learn.
 */
import { setFlagsFromString } from "node:v8"

/** All objects start young. Called before the first request: compiled code keeps the choice it was compiled with. */
export const disablePretenuring = (): void => setFlagsFromString("--no-allocation-site-pretenuring")
