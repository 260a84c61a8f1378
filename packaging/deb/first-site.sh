# Who takes the link away does not get it back by an upgrade.
site=/etc/firstbyte/sites-enabled/default
if [ -z "$2" ] && [ ! -e "$site" ] && [ ! -L "$site" ]; then
	ln -s ../sites-available/default "$site"
fi
