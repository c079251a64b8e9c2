"""The outer loop: submissions, snapshots, judge, budget, journal and recovery."""
