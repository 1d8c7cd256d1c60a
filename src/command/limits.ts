/**
 * The limits of what the replicated state takes. Each is checked before an entry is proposed and again as it
 * is applied, and its message says which one it was.
 */

/** Rows of one placement entry. */
export const MAX_PLACEMENT_ROWS = 500;
export const MAX_PLACEMENT_ENTRY_BYTES = 256 * 1024;
/** Any other entry. */
export const MAX_ENTRY_BYTES = 1024 * 1024;
/** Shards that one report or confirm names. */
export const MAX_REPORT_SHARDS = 10_000;

export const MAX_BROKERS = 4_096;
export const MAX_RESOURCES = 100_000;
export const MAX_SHARDS_PER_RESOURCE = 100_000;
export const MAX_SHARDS = 500_000;
export const MAX_REPLICATION_FACTOR = 16;
export const MAX_WEIGHT = 1_000;
/** The largest `maxShards` of a broker; `null` means no cap. */
export const MAX_SHARD_CAP = 1_000_000;

/** A label map as JSON, UTF-8. */
export const MAX_LABELS_BYTES = 4 * 1024;
export const MAX_ADDRESSES = 16;
export const MAX_ADDRESS_BYTES = 256;
export const MAX_STORE_ID_BYTES = 128;
/** Of the detail that a decision carries; a longer one is cut. */
export const MAX_DETAIL_CHARS = 1_024;

/**
 * The largest generation, incarnation, count of failed moves or time (ms) in the state. What would count past it is refused
 * where it counts; far above it whole numbers lose their last digit, and a snapshot could not be read again.
 */
export const MAX_COUNTER = 2 ** 52;
/** An unused cluster keeps the generations and incarnations of an imported file up to here: as much again is left to count. */
export const MAX_KEPT_COUNTER = 2 ** 51;

export const MAX_CONCURRENT_MOVES = 1_000;
/** Durations (ms) and lags (records) of the policy. */
export const MAX_POLICY_NUMBER = 2_147_483_647;

export const MAX_IMPORT_PARTS = 10_000;

/**
 * What the state may take in a snapshot before what makes it larger is refused. A member that was away is sent one snapshot,
 * of at most `MAX_SNAPSHOT_BYTES`: what is left up to there is for rows that grow by themselves, as moves and reports come.
 */
export const MAX_STATE_BYTES = 192 * 1024 * 1024;
/** New shards are still placed up to here: their resource was accepted, and counted by `SHARD_BYTES` each. */
export const MAX_PLACED_STATE_BYTES = 224 * 1024 * 1024;
/** A shard's row with three copies, its decision, and names of usual length. */
export const SHARD_BYTES = 400;
/** What all staged imports may take. */
export const MAX_STAGED_BYTES = 128 * 1024 * 1024;
/** By so much, at most, a row grows when its import is committed. */
export const COMMITTED_ROW_BYTES = 96;
