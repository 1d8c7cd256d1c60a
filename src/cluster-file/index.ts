export { exportCluster } from './export.ts';
export { checkEventLimits } from './event-limits.ts';
export { parseEvents } from './events.ts';
export { parseClusterFile, readClusterFile } from './parse.ts';
