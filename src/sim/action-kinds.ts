import type { BrokerAction, MemberAction, OperatorAction, SimAction, TopologyAction } from './plan.ts';

const MEMBER_ACTIONS: ReadonlySet<string> = new Set<MemberAction['type']>([
  'kill',
  'crashAt',
  'stall',
  'slowDisk',
  'failDisk',
  'jumpWall',
  'snapshot',
  'flipBit',
  'burst',
  'wipe',
]);

const BROKER_ACTIONS: ReadonlySet<string> = new Set<BrokerAction['type']>([
  'restore',
  'clones',
  'loseTail',
  'slowReads',
  'mute',
  'loseAnswers',
  'refuseCopies',
  'lateAnswers',
  'otherBrokersReturn',
  'heardLate',
  'overload',
]);

const OPERATOR_ACTIONS: ReadonlySet<string> = new Set<OperatorAction['type']>([
  'reimport',
  'cancelMoves',
  'policy',
]);

export function isMemberAction(action: SimAction): action is MemberAction {
  return MEMBER_ACTIONS.has(action.type);
}

export function isBrokerAction(action: SimAction): action is BrokerAction {
  return BROKER_ACTIONS.has(action.type);
}

export function isOperatorAction(action: SimAction): action is OperatorAction {
  return OPERATOR_ACTIONS.has(action.type);
}

export function isTopologyAction(action: SimAction): action is TopologyAction {
  return action.type === 'center' || action.type === 'flap';
}
