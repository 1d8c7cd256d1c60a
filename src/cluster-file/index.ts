export { exportCluster, isTimed } from './export.ts';
export { parseEvents } from './events.ts';
export { parseClusterFile, readClusterFile } from './parse.ts';
