"""What every law must do, shipped or your own: the suite behind `steadyflow check-policy`.

Read `kit` (what is asked), then `readings` (what a law may be shown), then `shipped` (an example of every law).
"""
