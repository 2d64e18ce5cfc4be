"""What was asked: refused, disarmed, compared, and guarded."""
