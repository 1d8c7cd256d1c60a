export { ClusterState } from './cluster-state.ts';
export { asString, Fields, Malformed } from './fields.ts';
export {
  ASSIGNMENT_STATES,
  failuresField,
  KINDS,
  LIFECYCLES,
  MOVE_ROLES,
  MOVE_STEPS,
  readAssignment,
  readBroker,
  readMove,
  readPolicy,
  readResource,
  REASONS,
  STEPS,
  ZONE_POLICIES,
} from './read-rows.ts';
export { hashRow } from './hash.ts';
export { errorOf, readResult } from './result.ts';
export { canonicalValue } from './rows.ts';
export { MAX_SESSION_BYTES, MAX_SESSIONS, SESSION_WINDOW } from './sessions.ts';
export { decodeInSteps, decodeSnapshot, encodeSnapshot } from './snapshot.ts';
export { SHARD_NUMBERS, ShardMap, type ShardRows } from './shard-map.ts';
export { inShardOrder } from './shard-order.ts';
export { snapshotParts } from './snapshot-parts.ts';
export {
  IMPORT_EXPIRY_MS,
  MAX_STAGED_IMPORTS,
  type ImportPart,
  type StagedImport,
} from './staged-imports.ts';
export { storeOf } from './store-of.ts';
export * from './types.ts';
