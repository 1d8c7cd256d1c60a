const FNV_OFFSET = 0xcbf29ce484222325n;
const FNV_PRIME = 0x100000001b3n;
const JUMP_MULTIPLIER = 2862933555777941757n;
const MASK = (1n << 64n) - 1n;

/**
 * Which of `shards` shards (at least 1) a key belongs to: jump consistent hashing (Lamping and Veach, 2014) of the
 * 64-bit FNV-1a hash of the key's UTF-8 bytes. Frozen: every client in every language must agree
 * (docs/protocol.md has the vectors). Growing from n to n+1 shards moves 1 key in n+1, all to the new shard.
 */
export function shardOfKey(key: string, shards: number): number {
  let hash = fnv1a64(key);
  let shard = -1;
  let next = 0;
  while (next < shards) {
    shard = next;
    hash = (hash * JUMP_MULTIPLIER + 1n) & MASK;
    // Exact in doubles: 2^31 over an integer of at most 2^31, as the paper has it.
    next = Math.floor((shard + 1) * (2 ** 31 / (Number(hash >> 33n) + 1)));
  }
  return shard;
}

/** FNV-1a, 64 bits, over UTF-8. */
export function fnv1a64(key: string): bigint {
  let hash = FNV_OFFSET;
  for (const byte of new TextEncoder().encode(key)) hash = ((hash ^ BigInt(byte)) * FNV_PRIME) & MASK;
  return hash;
}
