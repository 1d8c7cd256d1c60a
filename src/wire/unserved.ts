import type { AssignmentRow, BrokerRow } from '../state/index.ts';

/** Why a client of a placed shard is not served now. */
export type UnservedReason = 'leader_gone' | 'leader_out_of_sync' | 'opening' | 'fenced';

/** Of these, the ones that end by themselves when the brokers do their part: a hand-over, or a new leader that opens. */
export const PASSING: ReadonlySet<UnservedReason> = new Set(['opening', 'fenced'] as const);

/**
 * Says whether a client would be served, as far as the replicated state knows.
 *
 * @returns `null` where the leader serves the shard
 */
export function unservedReason(
  { leader, inSync, state }: Pick<AssignmentRow, 'leader' | 'inSync' | 'state'>,
  lifecycleOf: (broker: string) => BrokerRow['lifecycle'] | undefined,
): UnservedReason | null {
  const lifecycle = lifecycleOf(leader);
  if (lifecycle !== 'live' && lifecycle !== 'draining') return 'leader_gone';
  if (!inSync.includes(leader)) return 'leader_out_of_sync';
  if (state === 'active') return null;
  return state === 'assigning' ? 'opening' : 'fenced';
}
