export { SimClock } from './clock.ts';
export { HEALTHY_DISK, SimDisk } from './disk.ts';
export type { DiskFaults, SimDiskCopy } from './disk.ts';
export { HEALTHY_LINK, SimNetwork } from './net.ts';
export type { Link } from './net.ts';
export { SimRandom } from './random.ts';
export { TraceHash } from './trace.ts';
export { SimProcess, SimWorld } from './world.ts';
