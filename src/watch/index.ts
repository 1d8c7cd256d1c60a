export { filterChanges, matchesFilter, type WatchedChange, type WatchFilter } from './filter.ts';
export { ChangeRing, DEFAULT_RING, type RingLimits } from './ring.ts';
export * from './types.ts';
