export { filterChanges, matchesFilter, type WatchedChange, type WatchFilter } from './filter.ts';
export { ChangeRing, type RingLimits } from './ring.ts';
export * from './types.ts';
