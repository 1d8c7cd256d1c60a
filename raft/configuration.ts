import type { MemberId } from './types.ts';

/** One step of a change of membership. */
export interface ConfigurationChange {
  readonly type: 'addVoter' | 'addLearner' | 'remove';
  readonly id: MemberId;
}
