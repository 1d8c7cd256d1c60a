export type { Clock, Random, Timer } from './clock.ts';
export type { ConfigurationChange } from './configuration.ts';
export { RaftError, RaftInvariantError, type RaftErrorCode } from './errors.ts';
export { DEFAULT_LIMITS, checkedLimits, type RaftLimits } from './limits.ts';
export { MemoryStorage } from './memory-storage.ts';
export { RaftNode, type RaftNodeOptions } from './node.ts';
export type { Applied } from './pending-proposals.ts';
export type { StateMachine } from './state-machine.ts';
export type { ProgressState, ProgressStatus, RaftState, RaftStatus } from './status.ts';
export type { RaftStorage, StorageWrite, StoredState } from './storage.ts';
export type { Transport, TransportHandler } from './transport.ts';
export type {
  Configuration,
  Entry,
  EntryKind,
  HardState,
  MemberId,
  Message,
  Role,
  Snapshot,
  SnapshotMeta,
} from './types.ts';
