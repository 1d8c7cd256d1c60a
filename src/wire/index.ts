export { createAdminSurface, type AdminSurface, type AdminSurfaceOptions } from './rpc-surface.ts';
export type { NodeHealth } from './http-health.ts';
export { countLevels } from './rpc-levels.ts';
export { countReplication, sumReplication } from './rpc-replication.ts';
export { RPC_METHODS, findMethod } from './rpc-registry.ts';
export { MAX_IMPORT_PART_BYTES } from './rpc-import.ts';
export type { RpcMethod } from './rpc-types.ts';
