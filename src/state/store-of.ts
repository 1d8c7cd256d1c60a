import type { BrokerRow } from './types.ts';

/**
 * What a registration's store is to the one that was registered last under the same id.
 *
 * `same`: it has everything that the last one had. `went_back`: it has the id of the last one, yet its count of starts is
 * not above the last, or no longer given: an older copy of it, or its twin, runs. Which of the two holds what the other
 * does not can no longer be told by that id. `other`: it holds nothing of what the last one held.
 */
export function storeOf(
  last: Pick<BrokerRow, 'storeId' | 'starts'> | undefined,
  { storeId, starts }: Pick<BrokerRow, 'storeId' | 'starts'>,
): 'same' | 'went_back' | 'other' {
  if (storeId === null || last?.storeId !== storeId) return 'other';
  if (last.starts === null) return 'same';
  return starts !== null && starts > last.starts ? 'same' : 'went_back';
}
