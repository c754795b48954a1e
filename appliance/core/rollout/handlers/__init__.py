"""What each event of a rollout does: functions that change the generations and return effects."""
